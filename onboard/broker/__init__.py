"""The broker: a folder or Redis, and the bells that go through it. No message carries work.

url.py, trouble.py       its URL, read strictly; why it cannot be used
app.py, doorbell.py      the Celery app of those who ring
bells.py                 the edge: what comes from the broker is a bell or nothing
filesystem.py, redis_transport.py    Kombu's transports, made safe for several processes
"""
