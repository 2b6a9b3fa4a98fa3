"""Every document that leaves the process, declared once.

Routes return these, OpenAPI comes from them, the client parses into them, `--json` prints them, and reports and pages
read them. A field's alias is its name in JSON where Python has another one.
"""
