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
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/luanette/luanette/internal/base/realpath"
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
