// Gives documents of JSON with schemas to Apicurio's Avro converter, and writes what it
// makes of them: each schema once, and by topic the schema's number and the data of key
// and value: avro.json.gz, once it is compressed. The documents are what
// `python -m tests.support.oracles.every_type` prints.
// Run with io.apicurio:apicurio-registry-utils-converter:2.6.13.Final, Kafka's
// connect-json 4.1.1 and jackson-core 2.19.0:
// java -cp 'lib/*' Avro.java documents.json avro.json
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.apicurio.registry.utils.converter.avro.AvroData;
import java.io.ByteArrayOutputStream;
import java.io.File;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.EncoderFactory;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.json.JsonConverter;

public class Avro {
    private static final Map<String, Integer> NUMBERS = new LinkedHashMap<>();
    private static final ObjectMapper MAPPER = new ObjectMapper();
    private static final AvroData AVRO = new AvroData(1000);

    public static void main(String[] files) throws Exception {
        JsonNode topics = MAPPER.readTree(new File(files[0]));
        ObjectNode found = MAPPER.createObjectNode();
        ArrayNode schemas = found.putArray("schemas");
        ObjectNode records = found.putObject("records");
        JsonConverter keys = converter(true);
        JsonConverter values = converter(false);
        for (Iterator<String> names = topics.fieldNames(); names.hasNext();) {
            String topic = names.next();
            ArrayNode list = records.putArray(topic);
            for (JsonNode record : topics.get(topic)) {
                ArrayNode one = list.addArray();
                write(one, keys, topic, record.get(0), schemas);
                write(one, values, topic, record.get(1), schemas);
            }
        }
        MAPPER.writeValue(new File(files[1]), found);
    }

    private static JsonConverter converter(boolean key) {
        JsonConverter converter = new JsonConverter();
        converter.configure(Map.of("schemas.enable", "true", "replace.null.with.default", "false"), key);
        return converter;
    }

    private static void write(
            ArrayNode into, JsonConverter converter, String topic, JsonNode text, ArrayNode schemas)
            throws Exception {
        if (text.isNull()) {
            into.addNull();
            return;
        }
        SchemaAndValue read = converter.toConnectData(topic, text.asText().getBytes(StandardCharsets.UTF_8));
        Schema schema = AVRO.fromConnectSchema(read.schema());
        Object value = AVRO.fromConnectData(read.schema(), read.value());
        String shown = schema.toString();
        Integer number = NUMBERS.get(shown);
        if (number == null) {
            number = NUMBERS.size();
            NUMBERS.put(shown, number);
            schemas.add(shown);
        }
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        BinaryEncoder encoder = EncoderFactory.get().directBinaryEncoder(out, null);
        new GenericDatumWriter<Object>(schema).write(value, encoder);
        encoder.flush();
        into.addArray().add(number.intValue()).add(Base64.getEncoder().encodeToString(out.toByteArray()));
    }
}
