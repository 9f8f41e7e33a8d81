"""Orders to a harvest and its live numbers: in its folder, or in the database if harvesters run it."""

from dataclasses import replace
from datetime import timedelta

from webdepot.archive import Archive
from webdepot.harvest import order_file
from webdepot.harvest.order_file import Order, OrderVerb
from webdepot.harvest.parts import part_rows
from webdepot.harvest.parts.progress_json import progress_of
from webdepot.harvest.report import live
from webdepot.harvest.report.live import LiveNumbers
from webdepot.model import Harvest
from webdepot.services.harvest import harvests, processes


def orders_of(archive: Archive, harvest: Harvest) -> list[Order]:
    """All orders given to a harvest."""
    if not harvests.parts_of(archive, harvest):
        return order_file.read(harvests.folder_of(archive, harvest))
    with archive.database.reading() as connection:
        lines = part_rows.orders_of(connection, harvest.id)
    return [order_file.decode(line, number, f"the orders of {harvest.id}") for number, line in lines]


def give_order(archive: Archive, harvest: Harvest, order: Order) -> Order:
    """Give an order to a harvest, in its folder or in the database; returns it with its number."""
    if not harvests.parts_of(archive, harvest):
        return order_file.give(
            harvests.folder_of(archive, harvest),
            order.verb,
            at=order.at,
            by=order.by,
            reason=order.reason,
            urls=order.urls,
            changes=order.changes,
        )
    with archive.database.transaction() as connection:
        number = part_rows.add_order(connection, harvest.id, order_file.encode(order).decode().rstrip("\n"))
        if order.verb is OrderVerb.STOP:
            part_rows.stop(connection, harvest.id)
    return replace(order, number=number)


def numbers_of(archive: Archive, harvest: Harvest) -> LiveNumbers | None:
    """The last numbers of a harvest; None before it began, and after it was deposited."""
    parts = harvests.parts_of(archive, harvest)
    shown = [each for part in parts if (each := progress_of(part.live)) is not None]
    if not shown:
        return live.read(harvests.folder_of(archive, harvest))
    lease_s = archive.config.cluster.lease_s
    silent_s = max(part.silent_s(lease_s) for part in parts)
    return live.numbers_of(processes.add_up(shown), at=archive.clock() - timedelta(seconds=silent_s))


def checkpoint_age_s(archive: Archive, harvest: Harvest) -> float | None:
    """Time since the last checkpoint of the part whose checkpoint is oldest; None if no harvesters run the
    harvest.
    """
    parts = harvests.parts_of(archive, harvest)
    lease_s = archive.config.cluster.lease_s
    return max((part.checkpoint_age_s(lease_s) for part in parts), default=None)
