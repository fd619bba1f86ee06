// SPDX-License-Identifier: Apache-2.0
import io.grpc.CallOptions;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import io.grpc.MethodDescriptor;
import io.grpc.StatusRuntimeException;
import io.grpc.stub.ClientCalls;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;

/** A client on grpc-java: java Export.java TARGET FILE... sends each file as one Export, and prints its status code. */
class Export {
	static final String METHOD = "opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export";

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

	static final MethodDescriptor<byte[], byte[]> EXPORT = MethodDescriptor.newBuilder(BYTES, BYTES)
		.setType(MethodDescriptor.MethodType.UNARY).setFullMethodName(METHOD).build();

	static int send(ManagedChannel channel, String file) throws IOException {
		try {
			ClientCalls.blockingUnaryCall(channel, EXPORT, CallOptions.DEFAULT, Files.readAllBytes(Path.of(file)));
			return 0;
		} catch (StatusRuntimeException error) {
			return error.getStatus().getCode().value();
		}
	}

	public static void main(String[] arguments) throws IOException {
		ManagedChannel channel = Grpc.newChannelBuilder(arguments[0], InsecureChannelCredentials.create()).build();
		for (String file : Arrays.copyOfRange(arguments, 1, arguments.length))
			System.out.println(send(channel, file));
		channel.shutdownNow();
	}
}
