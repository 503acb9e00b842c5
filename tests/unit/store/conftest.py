from tests.unit.store.databases import empty_url, flaky_server, postgres_tables, sqlite_store, store, url

__all__ = ["empty_url", "flaky_server", "postgres_tables", "sqlite_store", "store", "url"]
