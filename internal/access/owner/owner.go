// Package owner says who the owner of a server without keys is: whoever can read a secret
// in its data folder. Everybody else on the machine is a guest.
package owner

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/secret"
)

// File is the file in the data folder that has the secret.
const File = "owner_secret"

// prefix lets people and scanners recognize the secret.
const prefix = "luo_"

// Read returns the secret of a data folder; fs.ErrNotExist if it has none yet.
func Read(data string) (secret.Text, error) {
	raw, err := os.ReadFile(filepath.Join(data, File))
	if err != nil {
		return secret.Text{}, err
	}
	text := strings.TrimSpace(string(raw))
	if !strings.HasPrefix(text, prefix) || len(text) < len(prefix)+20 {
		return secret.Text{}, fault.New(fault.Config, "%s is not an owner's secret", filepath.Join(data, File)).WithHint("remove the file; the next start makes another")
	}
	return secret.New(text), nil
}

// IsSecret reports whether a token looks like the secret of a data folder.
func IsSecret(token string) bool { return strings.HasPrefix(token, prefix) }

// Secret returns the secret of a data folder, which it makes if there is none.
func Secret(data string) (secret.Text, error) {
	path := filepath.Join(data, File)
	// Two processes may start at once: the file is complete before it gets its name, and the
	// first one counts.
	made, err := os.CreateTemp(data, File+".*")
	if err != nil {
		return secret.Text{}, fault.Wrap(fault.Config, err, "make %s", path)
	}
	defer func() { _ = os.Remove(made.Name()) }()
	_, err = made.WriteString(prefix + rand.Text() + "\n") // CreateTemp has made it 0600
	if err = errors.Join(err, made.Close()); err == nil {
		if err = os.Link(made.Name(), path); errors.Is(err, fs.ErrExist) {
			err = nil
		}
	}
	if err != nil {
		return secret.Text{}, fault.Wrap(fault.Config, err, "make %s", path)
	}
	return Read(data)
}

// Codes are codes with each of which a browser signs in once, as the owner.
type Codes struct {
	mu   sync.Mutex
	open [][sha256.Size]byte
}

// maxCodes is how many codes are open at a time; a new one ends the oldest.
const maxCodes = 16

// New makes a code.
func (c *Codes) New() string {
	code := rand.Text()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open = append(c.open, sha256.Sum256([]byte(code)))
	if len(c.open) > maxCodes {
		c.open = c.open[1:]
	}
	return code
}

// Use reports whether a code is open, and ends it.
func (c *Codes) Use(code string) bool {
	hash := sha256.Sum256([]byte(code))
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, one := range c.open {
		if one == hash { // the time this takes says something about the hash only
			c.open = append(c.open[:i:i], c.open[i+1:]...)
			return true
		}
	}
	return false
}
