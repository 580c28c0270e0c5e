package main

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/luanette/luanette/internal/base/npmtest"
)

// rest implements rest NAME FILE: it starts json-server, a REST API over the data of a JSON
// file, and sets $NAME to its URL.
func rest(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: rest NAME FILE")
	}
	t := ts.Value(testKey{}).(*testing.T)
	server := exec.CommandContext(t.Context(), "node", "../../test/servers/json-server.cjs", ts.MkAbs(args[1]))
	server.Env = append(os.Environ(), "NODE_PATH="+npmtest.Folder(t))
	server.Stderr = os.Stderr
	out, err := server.StdoutPipe()
	ts.Check(err)
	ts.Check(server.Start())
	ts.Defer(func() {
		_ = server.Process.Kill() // it may have ended
		_ = server.Wait()
	})
	address, err := bufio.NewReader(out).ReadString('\n')
	ts.Check(err)
	ts.Setenv(args[0], strings.TrimSpace(address))
}

// service implements service NAME graphql|grpc: it starts a shop with that kind of API, and
// sets $NAME to its address.
func service(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: service NAME graphql|grpc")
	}
	folder, files := "../../internal/apis/graphql/testdata/", []string{"shop.mjs", "shop.graphql"}
	if args[1] == "grpc" {
		folder, files = "../../internal/apis/grpcapi/testdata/", []string{"shop.mjs", "shop.proto"}
	}
	t := ts.Value(testKey{}).(*testing.T)
	ctx, stop := context.WithCancel(t.Context())
	address, wait, err := npmtest.Start(ctx, npmtest.Folder(t), ts.MkAbs("."), folder+files[0], folder+files[1])
	ts.Defer(stop)
	ts.Check(err)
	ts.Defer(func() { stop(); wait() })
	ts.Setenv(args[0], address)
}
