// Gives the golden envelopes to Debezium's own ExtractNewRecordState, and writes what
// becomes of them, by mode and topic: unwrapped.json.gz, once it is compressed.
// Run with io.debezium:debezium-connect-plugins:3.5.0.Final and Kafka's connect-json and
// connect-transforms: java -cp 'lib/*' Unwrap.java golden.json unwrapped.json
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.debezium.transforms.ExtractNewRecordState;
import java.io.File;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.source.SourceRecord;

public class Unwrap {
    public static void main(String[] files) throws Exception {
        ObjectMapper mapper = new ObjectMapper();
        JsonNode topics = mapper.readTree(new File(files[0]));
        ObjectNode found = mapper.createObjectNode();
        for (Map.Entry<String, Map<String, Object>> mode : modes().entrySet()) {
            ExtractNewRecordState<SourceRecord> unwrap = new ExtractNewRecordState<>();
            unwrap.configure(mode.getValue());
            ObjectNode byTopic = found.putObject(mode.getKey());
            for (Iterator<String> names = topics.fieldNames(); names.hasNext();) {
                String topic = names.next();
                if (topic.startsWith("dbz.public")) {
                    unwrap(unwrap, topic, topics.get(topic), byTopic.putArray(topic));
                }
            }
        }
        mapper.writeValue(new File(files[1]), found);
    }

    private static Map<String, Map<String, Object>> modes() {
        Map<String, Map<String, Object>> modes = new LinkedHashMap<>();
        for (String mode : new String[]{"tombstone", "rewrite", "rewrite-with-tombstone", "drop"}) {
            Map<String, Object> configuration = new HashMap<>();
            configuration.put("delete.tombstone.handling.mode", mode);
            modes.put(mode, configuration);
        }
        modes.get("rewrite").put("add.fields", "op,table,lsn,source.ts_ms,txId:tx,transaction.id,"
                + "total_order,ts_ms,source.snapshot,sequence,ts_us,schema,db,origin,xmin");
        modes.get("drop").put("add.fields", "op,ts_ns");
        modes.get("drop").put("add.fields.prefix", "x.");
        return modes;
    }

    private static void unwrap(ExtractNewRecordState<SourceRecord> unwrap, String topic,
                               JsonNode records, ArrayNode into)
            throws Exception {
        JsonConverter converter = new JsonConverter();
        converter.configure(Map.of("schemas.enable", "true", "replace.null.with.default", "false"), false);
        for (JsonNode record : records) {
            SchemaAndValue read = record.get(1).isNull() ? SchemaAndValue.NULL
                    : converter.toConnectData(topic, record.get(1).asText().getBytes("UTF-8"));
            SourceRecord made = unwrap.apply(new SourceRecord(Map.of(), Map.of(), topic, null,
                    null, null, read.schema(), read.value()));
            if (made != null && made.value() == null) {
                into.addNull();
            }
            else if (made != null) {
                into.add(new String(converter.fromConnectData(topic, made.valueSchema(), made.value()), "UTF-8"));
            }
        }
    }
}
