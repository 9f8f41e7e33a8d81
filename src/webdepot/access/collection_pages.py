"""Pages of collections in the database: what staff wrote about a collection. A collection without a row is
public and is called by its name.
"""

from dataclasses import asdict, dataclass

from sqlalchemy import Connection, delete, insert, select

from webdepot.access.tables import collection_pages


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionPage:
    name: str
    title: str = ""
    text: str = ""
    """Paragraphs, with empty lines between them."""
    is_public: bool = True
    picture_url: str = ""
    """The page whose picture stands for the collection; empty means that of its newest site."""
    picture_timestamp: str = ""

    @property
    def shown_title(self) -> str:
        return self.title or self.name


def by_name(connection: Connection) -> dict[str, CollectionPage]:
    """All that were written; there are few collections."""
    rows = connection.execute(select(collection_pages)).mappings()
    return {row["name"]: CollectionPage(**row) for row in rows}


def put(connection: Connection, page: CollectionPage) -> None:
    """Write a page in place of the one that there was."""
    connection.execute(delete(collection_pages).where(collection_pages.c.name == page.name))
    connection.execute(insert(collection_pages).values(**asdict(page)))
