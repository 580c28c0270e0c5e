package attach

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/realpath"
)

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

// Server is a running server of the same user.
type Server struct {
	Info
	socket string
}

// answerTimeout limits how long a server may take to say who it is. One that is busy
// starting many upstreams answers within it; a frozen one is none.
const answerTimeout = 5 * time.Second

func findAt(ctx context.Context, place Place) (Server, error) {
	s := Server{socket: place.socket()}
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
	if err == nil && !isOwner(conn) {
		_ = conn.Close() // nothing was sent
		return nil, fmt.Errorf("the server at %s belongs to another user", s.socket)
	}
	return conn, err
}

// pipe is a connection to a server as a pair of pipes.
type pipe struct {
	net.Conn
	in *bufio.Reader
}

// open attaches to the server.
func (s Server) open(ctx context.Context, menu string) (*pipe, error) {
	conn, err := s.dial(ctx)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	query := url.Values{}
	if menu != "" {
		query.Set("menu", menu)
	}
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
