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
    """Address of the page whose picture represents the collection; if empty, that of its newest site is
    used.
    """
    picture_timestamp: str = ""

    @property
    def shown_title(self) -> str:
        return self.title or self.name


def by_name(connection: Connection) -> dict[str, CollectionPage]:
    """All stored pages by the name of their collection; there are few collections."""
    rows = connection.execute(select(collection_pages)).mappings()
    return {row["name"]: CollectionPage(**row) for row in rows}


def put(connection: Connection, page: CollectionPage) -> None:
    """Store the page of a collection; replaces an earlier one."""
    connection.execute(delete(collection_pages).where(collection_pages.c.name == page.name))
    connection.execute(insert(collection_pages).values(**asdict(page)))
