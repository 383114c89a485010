import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.ResultKind;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.table.api.TableResult;
import org.apache.flink.types.Row;
import org.apache.flink.util.CloseableIterator;

/** Runs SQL statements in a cluster of its own; prints the rows of each query. */
public final class Flink {
    public static void main(String[] statements) throws Exception {
        EnvironmentSettings streaming = EnvironmentSettings.newInstance().inStreamingMode().build();
        TableEnvironment tables = TableEnvironment.create(streaming);
        tables.getConfig().set("parallelism.default", "1");
        for (String statement : statements) {
            TableResult result = tables.executeSql(statement);
            if (result.getResultKind() != ResultKind.SUCCESS_WITH_CONTENT) {
                continue;
            }
            try (CloseableIterator<Row> rows = result.collect()) {
                while (rows.hasNext()) {
                    Row row = rows.next();
                    StringBuilder line = new StringBuilder("row\t" + row.getKind().shortString());
                    for (int place = 0; place < row.getArity(); place++) {
                        line.append('\t').append(row.getField(place));
                    }
                    System.out.println(line);
                }
            }
        }
        System.exit(0); // its threads would go on
    }
}
