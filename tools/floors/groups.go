package main

// Group is a folder of internal/ and the groups that its packages may import.
// Packages of one group may import each other.
type Group struct {
	Name      string
	MayImport string // names separated by spaces
}

// Groups is the order of the program, top first: a group imports only groups below
// it.
var Groups = []Group{
	{"client", "server config ui builtin chat jobs govern credentials access scripting music mcp apis zmq tools cluster store observe sandbox core base"},
	{"server", "config ui builtin chat jobs govern credentials access scripting music mcp apis zmq tools cluster store observe sandbox core base"},
	{"config", "builtin chat jobs govern credentials access scripting mcp apis tools store sandbox core base"},
	{"ui", "builtin govern credentials access music mcp apis cluster store observe sandbox core base"},
	{"builtin", "jobs govern access scripting music mcp tools store core base"},
	{"chat", "mcp store core base"},
	{"jobs", "scripting music store core base"},
	{"govern", "access scripting mcp tools store sandbox core base"},
	{"credentials", "access mcp store core base"},
	{"access", "store core base"},
	{"scripting", "music mcp tools store observe sandbox core base"},
	{"music", "tools store core base"},
	{"mcp", "apis zmq tools store observe sandbox core base"},
	{"apis", "tools store observe sandbox core base"},
	{"zmq", "core base"},
	{"tools", "store observe core base"},
	{"cluster", "store core base"},
	{"store", "core base"},
	{"observe", "core base"},
	{"sandbox", "core base"},
	{"core", "base"},
	{"base", ""},
}

// Public packages are for other programs. They may import these groups, and nothing of
// ours imports them.
var Public = []Group{{"backend", "zmq tools core base"}}

// Top is the command: it may import every group.
const Top = "cmd/luanette"

// Independent packages import nothing of ours and may be imported by all.
var Independent = []string{"lua", "docs", "examples/scripts"}

// Development programs are no part of the program: they may import everything, and
// nothing imports them.
var Development = []string{"tools", "test", "bench"}

// Everywhere are third-party packages that several of ours may import: OpenTelemetry's
// interfaces, whose implementations stay in one package, the system calls that the
// standard library leaves to x/sys, how it chooses a proxy, which it does not export, and gRPC,
// which services and a receiver of telemetry for tests have in common.
var Everywhere = []string{
	"go.opentelemetry.io/otel", "go.opentelemetry.io/otel/attribute", "go.opentelemetry.io/otel/codes",
	"go.opentelemetry.io/otel/trace", "go.opentelemetry.io/otel/metric", "go.opentelemetry.io/otel/propagation",
	"go.opentelemetry.io/otel/trace/noop", "go.opentelemetry.io/otel/metric/noop",
	"golang.org/x/sys/unix", "golang.org/x/net/http/httpproxy", "google.golang.org/grpc", "google.golang.org/protobuf/proto",
}
