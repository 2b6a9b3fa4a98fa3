"""All documents that the service returns, each declared once.

Routes return them, OpenAPI is generated from them, the client parses them, `--json` prints them, and reports and pages
show them. A field has an alias if its name in JSON differs from the one in Python.
"""
