import io.debezium.embedded.Connect;
import io.debezium.engine.ChangeEvent;
import io.debezium.engine.DebeziumEngine;
import java.io.IOException;
import java.io.Reader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.connect.header.Header;
import org.apache.kafka.connect.source.SourceRecord;

/**
 * Debezium's embedded engine into Kafka, with nothing around it: what Debezium Server does, without the server. A batch is
 * sent, then waited for, then its offset is kept.
 *
 * <p>Engine CONNECTOR.properties PRODUCER.properties; ends when it is told to (SIGTERM), or with status 1.
 */
public final class Engine implements DebeziumEngine.ChangeConsumer<ChangeEvent<SourceRecord, SourceRecord>> {
    private final KafkaProducer<byte[], byte[]> producer;

    private Engine(KafkaProducer<byte[], byte[]> producer) {
        this.producer = producer;
    }

    @Override
    public void handleBatch(List<ChangeEvent<SourceRecord, SourceRecord>> batch,
            DebeziumEngine.RecordCommitter<ChangeEvent<SourceRecord, SourceRecord>> committer) throws InterruptedException {
        List<Future<RecordMetadata>> sent = new ArrayList<>(batch.size());
        for (ChangeEvent<SourceRecord, SourceRecord> event : batch)
            sent.add(producer.send(record(event.value())));
        for (Future<RecordMetadata> one : sent) {
            try {
                one.get();
            } catch (ExecutionException e) {
                throw new IllegalStateException("a record was not taken", e.getCause());
            }
        }
        if (!batch.isEmpty())
            committer.markProcessed(batch.get(batch.size() - 1)); // an offset is that of all before it, too
        committer.markBatchFinished();
    }

    private static ProducerRecord<byte[], byte[]> record(SourceRecord from) {
        ProducerRecord<byte[], byte[]> to = new ProducerRecord<>(from.topic(), bytes(from.key()), bytes(from.value()));
        for (Header header : from.headers())
            to.headers().add(header.key(), bytes(header.value()));
        return to;
    }

    private static byte[] bytes(Object value) {
        if (value == null || value instanceof byte[])
            return (byte[]) value;
        if (!(value instanceof ByteBuffer))
            return value.toString().getBytes(StandardCharsets.UTF_8);
        ByteBuffer from = ((ByteBuffer) value).duplicate();
        byte[] to = new byte[from.remaining()];
        from.get(to);
        return to;
    }

    private static Properties read(String path) throws IOException {
        Properties found = new Properties();
        try (Reader from = Files.newBufferedReader(Path.of(path))) {
            found.load(from);
        }
        return found;
    }

    public static void main(String[] args) throws Exception {
        KafkaProducer<byte[], byte[]> producer =
                new KafkaProducer<>(read(args[1]), new ByteArraySerializer(), new ByteArraySerializer());
        CountDownLatch ended = new CountDownLatch(1);
        int[] status = {0};
        DebeziumEngine<ChangeEvent<SourceRecord, SourceRecord>> engine = DebeziumEngine.create(Connect.class)
                .using(read(args[0]))
                .using((success, message, error) -> {
                    if (!success) {
                        System.err.println("FAILED: " + message);
                        if (error != null)
                            error.printStackTrace();
                        status[0] = 1;
                    }
                })
                .notifying(new Engine(producer))
                .build();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            try {
                engine.close();
                ended.await(60, TimeUnit.SECONDS);
            } catch (Exception e) {
                e.printStackTrace();
            }
        }));
        engine.run();
        producer.close();
        ended.countDown();
        if (status[0] != 0)
            Runtime.getRuntime().halt(status[0]);
    }
}
