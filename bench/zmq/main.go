// Command zmq compares the cost of a tool call over ZeroMQ, with bodies in JSON and in
// MessagePack, with the same call over HTTP. hootserver and the hub serve the same tools,
// each in a process of its own. One or more
// callers call them through the connection manager. Turns alternate, so that other load on
// the machine affects both alike.
//
//	go run ./bench/zmq [-for 2s] [-turns 3] [-callers 1,16,64] [-bytes 100]
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/core/tool"
)

func main() {
	var (
		role    = flag.String("role", "", "serve as zmq, msgpack or http; used by the program itself")
		length  = flag.Duration("for", 2*time.Second, "how long to measure each turn")
		turns   = flag.Int("turns", 3, "number of turns; the best counts")
		callers = flag.String("callers", "1,16,64", "numbers of concurrent callers")
		bytes   = flag.Int("bytes", 100, "length of the text that is echoed")
	)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := run(ctx, *role, *length, *turns, *callers, *bytes)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/zmq:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, role string, length time.Duration, turns int, callers string, bytes int) error {
	switch role {
	case "zmq", "msgpack":
		return serveZMQ(ctx, role == "msgpack")
	case "http":
		return serveHTTP(ctx)
	}
	var counts []int
	for word := range strings.SplitSeq(callers, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 {
			return fmt.Errorf("-callers %q: want numbers like 1,16,64", callers)
		}
		counts = append(counts, n)
	}
	args, err := json.Marshal(map[string]string{"text": strings.Repeat("x", bytes)})
	if err != nil {
		return err
	}
	return measure(ctx, counts, turns, length, args)
}

// echo is the source of tools that both serve.
type echo struct{}

func (echo) Tools(context.Context) ([]tool.Info, error) {
	schema := json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`)
	raw := json.RawMessage(`{"name":"echo","description":"Returns its arguments","inputSchema":` + string(schema) + `,"annotations":{"readOnlyHint":true}}`)
	return []tool.Info{{Ref: tool.Ref{Name: "echo"}, Description: "Returns its arguments", Input: schema, Hints: tool.Hints{ReadOnly: true}, Raw: raw}}, nil
}

func (echo) Call(_ context.Context, call tool.Call) (tool.Result, error) {
	var in struct{ Text string }
	if err := json.Unmarshal(call.Args, &in); err != nil {
		return tool.Result{}, err
	}
	return tool.Output(in.Text, map[string]string{"text": in.Text})
}
