"""Drift: false alarms, texts until an alarm, and what the daily numbers cost serving.

Rows of held-out tasks are the texts of weeks. The published version would be a readout on the encoder.
"""
