"""Avro as Apicurio's and Confluent's converters make it of Debezium's records."""
