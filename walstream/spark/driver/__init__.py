"""The one process that runs Spark, for all workers of an instance.

Its own, since a JVM's memory and death are not a stream's. Who needs it connects to a
socket that the supervisor listens on (`keeper`); the first connection starts the
process (`python -m walstream.spark.driver`), which ends when nobody was connected for a
while. A worker sends its jobs there and gets the outcome of each chunk (`client`).
"""
