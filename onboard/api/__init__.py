"""The HTTP door: a FastAPI application over the use cases."""
