// SPDX-License-Identifier: Apache-2.0
import com.google.common.util.concurrent.MoreExecutors;
import io.grpc.CallOptions;
import io.grpc.ChannelCredentials;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import io.grpc.ManagedChannelBuilder;
import io.grpc.MethodDescriptor;
import io.grpc.Status;
import io.grpc.TlsChannelCredentials;
import io.grpc.stub.ClientCalls;
import java.io.ByteArrayInputStream;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;

/** A client on grpc-java; clients.py says what it is asked and what it prints. */
class Export {
	static final MethodDescriptor.Marshaller<byte[]> BYTES = new MethodDescriptor.Marshaller<>() {
		@Override
		public InputStream stream(byte[] value) {
			return new ByteArrayInputStream(value);
		}

		@Override
		public byte[] parse(InputStream stream) {
			try {
				return stream.readAllBytes();
			} catch (IOException error) {
				throw new UncheckedIOException(error);
			}
		}
	};

	record Call(MethodDescriptor<byte[], byte[]> method, byte[] body) {}

	final Map<String, String> options = new TreeMap<>();
	final List<Call> calls = new ArrayList<>();
	final Map<String, Integer> answers = new TreeMap<>();
	final ManagedChannel channel;

	Export(String[] arguments) throws IOException {
		for (int i = 1; i < arguments.length; i++) {
			String[] word = arguments[i].split(arguments[i].startsWith("/") ? ":" : "=", 2);
			if (arguments[i].startsWith("/"))
				calls.add(new Call(method(word[0].substring(1)), Files.readAllBytes(Path.of(word[1]))));
			else
				options.put(word[0], word[1]);
		}
		ManagedChannelBuilder<?> builder = Grpc.newChannelBuilder(arguments[0], credentials());
		if (options.containsKey("keepalive"))
			builder.keepAliveTime(number("keepalive", 0), TimeUnit.SECONDS).keepAliveWithoutCalls(true);
		channel = builder.build();
	}

	static MethodDescriptor<byte[], byte[]> method(String name) {
		return MethodDescriptor.newBuilder(BYTES, BYTES).setType(MethodDescriptor.MethodType.UNARY)
			.setFullMethodName(name).build();
	}

	int number(String name, int otherwise) {
		return Integer.parseInt(options.getOrDefault(name, Integer.toString(otherwise)));
	}

	ChannelCredentials credentials() throws IOException {
		if (!options.containsKey("ca"))
			return InsecureChannelCredentials.create();
		TlsChannelCredentials.Builder tls = TlsChannelCredentials.newBuilder().trustManager(new File(options.get("ca")));
		if (options.containsKey("cert"))
			tls.keyManager(new File(options.get("cert")), new File(options.get("key")));
		return tls.build();
	}

	CallOptions callOptions() {
		CallOptions common = CallOptions.DEFAULT.withDeadlineAfter(number("deadline", 60), TimeUnit.SECONDS);
		return options.containsKey("gzip") ? common.withCompression("gzip") : common;
	}

	static String outcome(Future<byte[]> answer) throws InterruptedException {
		try {
			return "0 " + HexFormat.of().formatHex(answer.get());
		} catch (ExecutionException error) {
			return Status.fromThrowable(error).getCode().value() + " ";
		}
	}

	/** Sends all calls, so many at once, and returns when the last one is answered. */
	void round() throws InterruptedException {
		Semaphore free = new Semaphore(number("calls", 1));
		var pending = new ArrayList<Future<byte[]>>();
		for (Call call : calls) {
			free.acquire();
			var answer = ClientCalls.futureUnaryCall(channel.newCall(call.method(), callOptions()), call.body());
			answer.addListener(free::release, MoreExecutors.directExecutor());
			pending.add(answer);
		}
		for (Future<byte[]> answer : pending)
			answers.merge(outcome(answer), 1, Integer::sum);
	}

	public static void main(String[] arguments) throws Exception {
		Export client = new Export(arguments);
		for (int i = 0; i < client.number("rounds", 1); i++) {
			if (i > 0)
				TimeUnit.SECONDS.sleep(client.number("pause", 0));
			client.round();
		}
		client.channel.shutdownNow();
		client.answers.forEach((answer, count) -> System.out.println(count + " " + answer));
	}
}
