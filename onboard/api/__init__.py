"""The HTTP interface: a FastAPI application over the use cases."""
