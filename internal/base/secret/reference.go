package secret

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Finder resolves references to secrets in configuration: ${env:NAME},
// ${file:PATH} and ${keyring:SERVICE/NAME}. Its errors name the reference, never
// the secret.
type Finder struct {
	Getenv  func(name string) (string, bool)          // nil: no variable is set
	Folder  string                                    // base of relative paths
	Keyring func(service, name string) (Text, error)  // nil: there is no keyring
	Problem func(reference string, cause error) error // makes the error of a reference; may be nil
}

var reference = regexp.MustCompile(`\$\{(env|file|keyring):([^}]*)\}`)

// maxFile is the largest file of a secret, in bytes.
const maxFile = 64 << 10

// Find replaces the references in text by their secrets. Text without references is
// the secret itself.
func (f Finder) Find(text string) (Text, error) {
	var failed error
	found := reference.ReplaceAllStringFunc(text, func(form string) string {
		parts := reference.FindStringSubmatch(form)
		value, err := f.lookup(parts[1], parts[2])
		if err != nil && failed == nil {
			failed = f.problem(form, err)
		}
		return value
	})
	if failed != nil {
		return Text{}, failed
	}
	return New(found), nil
}

func (f Finder) problem(form string, cause error) error {
	if f.Problem != nil {
		return f.Problem(form, cause)
	}
	return fmt.Errorf("find %s: %w", form, cause)
}

func (f Finder) lookup(kind, name string) (string, error) {
	switch kind {
	case "env":
		if f.Getenv != nil {
			if value, ok := f.Getenv(name); ok && value != "" {
				return value, nil
			}
		}
		return "", errors.New("the variable is not set")
	case "file":
		return f.file(name)
	default:
		service, user, ok := strings.Cut(name, "/")
		if !ok || service == "" || user == "" {
			return "", errors.New("it must be ${keyring:SERVICE/NAME}")
		}
		if f.Keyring == nil {
			return "", errors.New("there is no keyring here")
		}
		value, err := f.Keyring(service, user)
		return value.Reveal(), err
	}
}

// file reads a file, without the newline at its end.
func (f Finder) file(path string) (string, error) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(f.Folder, path)
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "", err
	case !info.Mode().IsRegular() || info.Size() > maxFile:
		return "", fmt.Errorf("it is not a file of at most %d bytes", maxFile)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	value := strings.TrimRight(string(text), "\r\n")
	if value == "" {
		return "", errors.New("the file is empty")
	}
	return value, nil
}

// IsReference reports whether text is a reference to a secret.
func IsReference(text string) bool { return reference.MatchString(text) }

var onlyReferences = regexp.MustCompile(`^(?:Bearer |Basic |Token )?(?:\$\{(?:env|file|keyring):[^}]*\})+$`)

// Shown returns a configured secret for display: references unchanged, anything else
// hidden.
func Shown(text string) string {
	if text == "" || onlyReferences.MatchString(text) {
		return text
	}
	return Hidden
}
