package config

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/secret"
)

// secretFolder is the folder of stored secrets, beside the configuration file.
const secretFolder = "secrets"

// EditedFile returns the configuration file that edits change. It may not exist yet.
func EditedFile(sources Sources) (string, error) {
	file, err := configFile(sources)
	if file == "" {
		file = UserFile(sources.Env)
	}
	return file, err
}

// StoreSecret stores a secret in a file that only its owner can read, beside the
// configuration file, and returns the reference to it.
func StoreSecret(sources Sources, name string, value secret.Text) (reference string, err error) {
	path, err := secretPath(sources, name)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", fault.Wrap(fault.Config, err, "store secret")
	}
	if err := os.WriteFile(path, []byte(value.Reveal()+"\n"), 0o600); err != nil {
		return "", fault.Wrap(fault.Config, err, "store secret")
	}
	return secretReference(name), os.Chmod(path, 0o600)
}

func secretReference(name string) string { return "${file:" + secretFolder + "/" + name + "}" }

func secretPath(sources Sources, name string) (string, error) {
	file, err := EditedFile(sources)
	return filepath.Join(filepath.Dir(file), secretFolder, name), err
}

// hasSecret reports whether a secret is stored.
func hasSecret(sources Sources, name string) bool {
	_, _, err := readSecret(sources, name)
	return err == nil
}

// readSecret returns the reference to a stored secret, and its value.
func readSecret(sources Sources, name string) (reference, value string, err error) {
	path, err := secretPath(sources, name)
	if err != nil {
		return "", "", err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", "", fault.Wrap(fault.Config, err, "read secret")
	}
	return secretReference(name), strings.TrimRight(string(text), "\r\n"), nil
}
