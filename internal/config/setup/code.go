package setup

import (
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/principal"
)

// A server without keys is open to everything on this machine: to other users and to the
// programs that it started in a sandbox. None of them may decide which programs run, so
// the page asks for a code that only the user of the server can read.

// CodeFile is the file in the data folder that has the code.
const CodeFile = "page_code"

// codeHeader is the header in which the page sends the code.
const codeHeader = "Luanette-Code"

// NewCode makes the code of a server that begins to serve and writes it to the data
// folder. Without a code, no programs are added to a server without keys.
func (s *Service) NewCode(data string) (string, error) {
	if !s.Programs {
		return "", nil
	}
	text := rand.Text() // 5 bits in each letter
	code := text[:4] + "-" + text[4:8]
	if err := os.WriteFile(filepath.Join(data, CodeFile), []byte(code+"\n"), 0o600); err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.code = code
	return code, nil
}

// errCode is returned for requests without the code.
var errCode = errors.New("the code is missing or wrong")

// checkCode refuses requests without the code of a server without keys. With keys, the key
// of an administrator is proof enough.
func (s *Service) checkCode(r *http.Request) error {
	if principal.Of(r.Context()).ID != principal.LocalID {
		return nil
	}
	s.mu.Lock()
	code := s.code
	s.mu.Unlock()
	given := strings.ToUpper(strings.TrimSpace(r.Header.Get(codeHeader)))
	if code != "" && subtle.ConstantTimeCompare([]byte(given), []byte(code)) == 1 {
		return nil
	}
	return fault.Wrap(fault.Denied, errCode, "start a program").
		WithHint("type the code that the server printed when it started; it is also in the file %s of its data folder", CodeFile)
}
