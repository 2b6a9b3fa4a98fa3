"""The Celery broker (a folder or Redis) and the doorbell messages sent through it. Messages carry no data.

url.py, trouble.py       its URL, read strictly; why it cannot be used
app.py, doorbell.py      the Celery app that sends
bells.py                 validation of received messages
shared_limits.py         rate limits that servers count together in Redis
filesystem.py, redis_transport.py    Kombu's transports, made safe for several processes
"""
