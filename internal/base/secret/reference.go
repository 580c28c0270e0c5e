package secret

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Finder looks up secrets that configuration only refers to: ${env:NAME},
// ${file:PATH} and ${keyring:SERVICE/NAME}. Its errors name the reference, never
// what was found.
type Finder struct {
	Getenv  func(name string) (string, bool)          // nil: there are no variables
	Folder  string                                    // relative paths of files begin here
	Keyring func(service, name string) (Text, error)  // nil: there is none
	Problem func(reference string, cause error) error // nil: an error of two words
}

var reference = regexp.MustCompile(`\$\{(env|file|keyring):([^}]*)\}`)

// maxFile is the most a file of a secret may have.
const maxFile = 64 << 10

// Authenticate is text with the secrets it refers to. Text without references is a
// secret as it is.
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

// file is what a file holds, without the line's end that editors add.
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

// IsReference tells whether text refers to a secret.
func IsReference(text string) bool { return reference.MatchString(text) }

var onlyReferences = regexp.MustCompile(`^(?:Bearer |Basic |Token )?(?:\$\{(?:env|file|keyring):[^}]*\})+$`)

// RedactURL is what of a configured secret may be seen: references, which are none
// themselves, and nothing else.
func Shown(text string) string {
	if text == "" || onlyReferences.MatchString(text) {
		return text
	}
	return Hidden
}
