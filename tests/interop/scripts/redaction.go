// SPDX-License-Identifier: Apache-2.0

// The Collector's redaction processor on log records: a line of JSON in, {config, logs}, with logs in OTLP/JSON, and the logs that it
// passes on, or {error}, out.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/redactionprocessor"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/processor/processortest"
)

type task struct {
	Config map[string]any
	Logs   json.RawMessage
}

func process(t task) ([]byte, error) {
	factory := redactionprocessor.NewFactory()
	config := factory.CreateDefaultConfig()
	if err := confmap.NewFromStringMap(t.Config).Unmarshal(config); err != nil {
		return nil, err
	}
	if err := confmap.Validate(config); err != nil {
		return nil, err
	}
	logs, err := (&plog.JSONUnmarshaler{}).UnmarshalLogs(t.Logs)
	if err != nil {
		return nil, err
	}
	sink := new(consumertest.LogsSink)
	processor, err := factory.CreateLogs(context.Background(), processortest.NewNopSettings(factory.Type()), config, sink)
	if err != nil {
		return nil, err
	}
	if err := processor.ConsumeLogs(context.Background(), logs); err != nil {
		return nil, err
	}
	return (&plog.JSONMarshaler{}).MarshalLogs(sink.AllLogs()[0])
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var t task
		err := json.Unmarshal(lines.Bytes(), &t)
		var out []byte
		if err == nil {
			out, err = process(t)
		}
		if err != nil {
			out, _ = json.Marshal(map[string]string{"error": err.Error()})
		}
		fmt.Println(string(out))
	}
}
