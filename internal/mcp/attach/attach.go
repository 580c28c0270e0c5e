// Package attach lets several processes of one user share a server: `luanette stdio`
// attaches to the server that already runs on its data folder, so that many MCP clients
// use one set of upstreams.
//
// The server listens on a Unix socket that only its user may connect to, beside its HTTP
// address. The socket speaks HTTP; a client that asks for an upgrade gets a pipe of MCP
// messages, one per line, as on standard input and output. Whoever can connect could open
// the database as well, so no key is needed.
package attach

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/filelock"
	"github.com/luanette/luanette/internal/base/fileowner"
	"github.com/luanette/luanette/internal/base/realpath"
	"github.com/luanette/luanette/internal/base/serverapi"
)

// Info describes a running server to processes of the same user.
type Info struct {
	Version string `json:"version"`
	PID     int    `json:"pid"`
	URL     string `json:"url,omitempty"`    // of its HTTP server
	Config  string `json:"config,omitempty"` // its configuration file
	Data    string `json:"data"`
	Daemon  bool   `json:"daemon"` // started in the background; it ends when it has no clients
	Clients int    `json:"clients"`
}

// Place is where a server and those who attach to it meet. Servers of one data folder that
// have different configurations have different places.
type Place struct {
	Folder string // of all places of a data folder
	Name   string
}

// PlaceOf returns the place of the server with a data folder, a configuration file and a
// database.
func PlaceOf(data, file, database string) Place {
	if full, err := filepath.Abs(data); err == nil { // servers tell theirs so
		data = full
	}
	sum := sha256.Sum256([]byte(strings.Join([]string{realpath.Of(file), database}, "\n")))
	return Place{filepath.Join(data, "run"), hex.EncodeToString(sum[:6])}
}

func (p Place) file(kind string) string { return filepath.Join(p.Folder, p.Name+"."+kind) }

// Log is the file to which a server in the background writes its log.
func (p Place) Log() string { return p.file("log") }

// maxSocketPath is the length that every operating system allows for the path of a socket.
const maxSocketPath = 100

// record is stored beside the socket, for a socket that had to be elsewhere.
type record struct {
	Socket string `json:"socket"`
	PID    int    `json:"pid"`
}

// socket returns the path of the socket of a running server, or "".
func (p Place) socket() string {
	text, err := os.ReadFile(p.file("json"))
	var stored record
	if err != nil || json.Unmarshal(text, &stored) != nil {
		return ""
	}
	return stored.Socket
}

// others returns the other places of the same data folder that have a server, or had one.
func (p Place) others() (list []Place) {
	files, _ := os.ReadDir(p.Folder) // an unreadable folder has none for us
	for _, file := range files {
		if name, ok := strings.CutSuffix(file.Name(), ".json"); ok && name != p.Name {
			list = append(list, Place{p.Folder, name})
		}
	}
	return list
}

// newSocket returns a path for a new socket that is short enough, and the folder to remove
// afterwards, if it made one.
func (p Place) newSocket() (path, folder string, err error) {
	if path = p.file("sock"); len(path) <= maxSocketPath {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", "", err
		}
		return path, "", nil
	}
	if folder, err = os.MkdirTemp("", "luanette-"); err != nil { // only its owner may enter it
		return "", "", err
	}
	return filepath.Join(folder, "server.sock"), folder, nil
}

// ErrNone says that no server runs at a place.
var ErrNone = errors.New("no server runs on the data folder")

// Find returns a running server. If any is true, one with another configuration on the same
// data folder will do.
func Find(ctx context.Context, place Place, any bool) (Server, error) {
	if s, err := findAt(ctx, place); err == nil {
		return s, nil
	}
	for _, other := range place.others() {
		s, err := findAt(ctx, other)
		if err != nil {
			continue
		}
		if any {
			return s, nil
		}
		return Server{}, &OtherError{s.Info}
	}
	return Server{}, ErrNone
}

// At returns the running server of a data folder whose HTTP server has the port of an
// address.
func At(ctx context.Context, place Place, port string) (Server, error) {
	for _, one := range append([]Place{place}, place.others()...) {
		if s, err := findAt(ctx, one); err == nil {
			if its, err := url.Parse(s.URL); err == nil && its.Port() == port {
				return s, nil
			}
		}
	}
	return Server{}, ErrNone
}

// OtherError says that a server runs on the data folder, with another configuration.
type OtherError struct{ Info Info }

func (e *OtherError) Error() string {
	return fmt.Sprintf("the server on the data folder (pid %d) uses another configuration: %s", e.Info.PID, e.Info.Config)
}

// Is makes it an ErrNone: there is none to attach to.
func (e *OtherError) Is(target error) bool { return target == ErrNone }

// Server is a running server of the same user or, for root, of the data folder's owner.
type Server struct {
	Info
	socket string
	folder string // of its places
}

// Address is that of the socket, for clients of HTTP.
func (s Server) Address() string { return serverapi.SocketScheme + s.socket }

// answerTimeout limits how long a server may take to say who it is. One that is busy
// starting many upstreams answers within it; a frozen one is none.
const answerTimeout = 5 * time.Second

func findAt(ctx context.Context, place Place) (Server, error) {
	s := Server{socket: place.socket(), folder: place.Folder}
	if s.socket == "" {
		return s, ErrNone
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	raw, err := s.Request(ctx, http.MethodGet, "/info")
	if err == nil {
		err = json.Unmarshal(raw, &s.Info)
	}
	if err == nil && realpath.Of(s.Data) != realpath.Of(filepath.Dir(place.Folder)) {
		err = fmt.Errorf("the server at %s uses the data folder %s", s.socket, s.Data)
	}
	return s, err
}

// Request sends a request to the server's API and returns the body of the answer.
func (s Server) Request(ctx context.Context, method, path string) (json.RawMessage, error) {
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return s.dial(ctx) }}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, method, "http://luanette"+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode >= http.StatusBadRequest {
		err = fault.New(fault.Upstream, "the server responded with status %d", response.StatusCode)
	}
	return raw, err
}

// Reload has the server read its configuration again, and returns the settings that changed
// and need a restart.
func (s Server) Reload(ctx context.Context) (waiting []string, err error) {
	raw, err := s.Request(ctx, http.MethodPost, "/reload")
	var answer Reloaded
	if err == nil {
		err = json.Unmarshal(raw, &answer)
	}
	if err == nil && answer.Error != "" {
		err = fault.New(fault.Config, "%s", answer.Error).WithHint("%s", answer.Hint)
	}
	return answer.Waiting, err
}

func (s Server) dial(ctx context.Context) (net.Conn, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", s.socket)
	if err == nil && !s.mayServe(conn) {
		_ = conn.Close() // nothing was sent
		return nil, fmt.Errorf("the server at %s belongs to another user", s.socket)
	}
	return conn, err
}

// mayServe reports whether a connection leads to a process of our user or, for root, of the
// user whom the folder belongs to.
func (s Server) mayServe(conn net.Conn) bool {
	return isUser(conn, os.Getuid()) || fileowner.Foreign(s.folder) && isUser(conn, fileowner.Of(s.folder))
}

// pipe is a connection to a server as a pair of pipes.
type pipe struct {
	net.Conn
	in *bufio.Reader
}

// Want is what a client asks for; empty fields for nothing in particular.
type Want struct {
	Menu string // the list of tools
	Set  string // the set of tools
}

// open attaches to the server.
func (s Server) open(ctx context.Context, want Want) (*pipe, error) {
	conn, err := s.dial(ctx)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	query := url.Values{"menu": {want.Menu}, "set": {want.Set}}
	_, err = fmt.Fprintf(conn, "GET /mcp?%s HTTP/1.1\r\nHost: luanette\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", query.Encode(), protocol)
	in := bufio.NewReaderSize(conn, 64<<10)
	if err == nil {
		var response *http.Response
		response, err = http.ReadResponse(in, nil) //nolint:bodyclose // the body is the connection
		if err == nil && response.StatusCode != http.StatusSwitchingProtocols {
			err = fmt.Errorf("the server responded with status %d", response.StatusCode)
		}
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &pipe{conn, in}, nil
}

// Starter starts a server in the background if there is none.
type Starter struct {
	Place  Place
	Args   []string // of this program, such as serve --data DIR
	Folder string   // that the server runs in
	Find   func(ctx context.Context) (Server, error)
}

// Limits of a server that starts in the background.
const (
	startTimeout = 60 * time.Second // for it to listen; upstreams connect later
	maxLog       = 10 << 20         // bytes of the log, after which a new one is begun
	startPoll    = 25 * time.Millisecond
)

// FindOrStart returns the running server, or starts one. When many processes call it at
// once, one of them starts the server and the others wait for it.
func (s *Starter) FindOrStart(ctx context.Context) (Server, error) {
	if found, err := s.Find(ctx); err == nil {
		return found, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fault.New(fault.Timeout, "no server within %s", startTimeout))
	defer cancel()
	lock, err := filelock.Wait(ctx, s.Place.file("start"))
	if err != nil {
		return Server{}, fault.Wrap(fault.Unavailable, err, "start a server in the background")
	}
	defer func() { _ = lock.Unlock() }() // nothing is lost with it
	if found, err := s.Find(ctx); err == nil {
		return found, nil
	}
	return s.start(ctx)
}

// start starts the server and waits until it can be found.
func (s *Starter) start(ctx context.Context) (Server, error) {
	log, err := openLog(s.Place.Log())
	if err != nil {
		return Server{}, fault.Wrap(fault.Config, err, "write the log of the server in the background")
	}
	defer log.Close()
	begin, _ := log.Seek(0, 2) // what it writes is shown if it ends at once
	program, err := os.Executable()
	if err != nil {
		return Server{}, fault.Wrap(fault.Internal, err, "find this program")
	}
	cmd := exec.Command(program, s.Args...) // it lives longer than this process
	cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, s.Folder
	detach(cmd)
	if err := cmd.Start(); err != nil {
		return Server{}, fault.Wrap(fault.Unavailable, err, "start a server in the background")
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	tick := time.NewTicker(startPoll)
	defer tick.Stop()
	for {
		if found, err := s.Find(ctx); err == nil {
			return found, nil
		}
		select {
		case <-tick.C:
		case <-ended:
			return Server{}, fault.New(fault.Unavailable, "the server in the background ended: %s", lastLines(s.Place.Log(), begin)).
				WithHint("its log is %s", s.Place.Log())
		case <-ctx.Done():
			return Server{}, fault.Wrap(fault.Timeout, context.Cause(ctx), "start a server in the background").WithHint("its log is %s", s.Place.Log())
		}
	}
}

// openLog opens the log to append to it. A large one is kept aside.
func openLog(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	if info, err := os.Stat(path); err == nil && info.Size() > maxLog {
		if err := os.Rename(path, path+".1"); err != nil {
			return nil, err
		}
	}
	log, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err == nil {
		fmt.Fprintf(log, "\n%s started in the background\n", time.Now().UTC().Format(time.RFC3339))
	}
	return log, err
}

// lastLines returns what a log says after a position, in short.
func lastLines(path string, from int64) string {
	text, err := os.ReadFile(path)
	if err != nil || int64(len(text)) < from {
		return "its log cannot be read"
	}
	lines := strings.Split(string(bytes.TrimSpace(text[from:])), "\n")
	return strings.Join(lines[max(0, len(lines)-5):], "; ")
}
