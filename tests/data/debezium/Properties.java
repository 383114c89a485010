// Prints the properties that a Debezium connector may have, with their defaults, as JSON:
// properties.json. Run with io.debezium:debezium-connector-postgres and
// debezium-connect-plugins:3.5.0.Final, and Kafka's connect-runtime and connect-json 4.3:
// java -cp 'lib/*' Properties.java > properties.json
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.debezium.connector.postgresql.PostgresConnectorConfig;
import io.debezium.transforms.ByLogicalTableRouter;
import io.debezium.transforms.ExtractNewRecordState;
import io.debezium.transforms.outbox.EventRouter;
import java.util.TreeSet;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.runtime.SourceConnectorConfig;

public class Properties {
    private static final ObjectMapper MAPPER = new ObjectMapper();

    public static void main(String[] none) throws Exception {
        ObjectNode found = MAPPER.createObjectNode();
        add(found.putObject("connector"), PostgresConnectorConfig.configDef());
        add(found.putObject("connect"), SourceConnectorConfig.configDef());
        add(found.putObject("json"), new JsonConverter().config());
        add(found.putObject("producer"), ProducerConfig.configDef());
        add(found.putObject("unwrap"), new ExtractNewRecordState<>().config());
        add(found.putObject("logical"), new ByLogicalTableRouter<>().config());
        add(found.putObject("outbox"), new EventRouter<>().config());
        System.out.println(MAPPER.writerWithDefaultPrettyPrinter().writeValueAsString(found));
    }

    private static void add(ObjectNode into, ConfigDef definition) {
        for (String name : new TreeSet<>(definition.names())) {
            ConfigDef.ConfigKey key = definition.configKeys().get(name);
            Object value = key.hasDefault() ? key.defaultValue : null;
            into.put(name, value == null ? null
                    : ConfigDef.convertToString(value, key.type));
        }
    }
}
