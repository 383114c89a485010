"""JSON Schema as Confluent's JsonSchemaConverter makes it of Debezium's records.

A record is the JSON that the formats write without schemas, behind the schema's id. The
schema is the converter's but for decimals: their values are base64, in the converter's
records too, and so their type is `string`, where the converter says `number` of that.
Where the converter would fail, walstream goes on: a null in an array whose items have
none in their schema is the type's empty value, counted by column.
"""
