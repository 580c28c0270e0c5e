package certificates

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
)

// Files are the certificates of an authority on disk, for the runtime of a program.
type Files struct {
	folder string
	alone  string // our certificate
	bundle string // with those that the system trusts
}

// systemRoots are where systems have the authorities they trust.
var systemRoots = []string{
	"/etc/ssl/certs/ca-certificates.crt", // Debian, Ubuntu, Arch, Gentoo
	"/etc/pki/tls/certs/ca-bundle.crt",   // Fedora, RHEL
	"/etc/ssl/ca-bundle.pem",             // openSUSE
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
	"/etc/ssl/cert.pem", // Alpine, macOS, BSD
}

// Write writes the authority's certificate to a new folder in parent, alone and with the
// authorities of the system and of further files.
func (a *Authority) Write(parent string, further []string) (*Files, error) {
	if parent != "" {
		if err := os.MkdirAll(parent, 0o700); err != nil {
			return nil, err
		}
	}
	folder, err := os.MkdirTemp(parent, "certificates-")
	if err != nil {
		return nil, err
	}
	f := &Files{folder: folder, alone: filepath.Join(folder, "luanette.pem"), bundle: filepath.Join(folder, "all.pem")}
	bundle, err := a.bundle(further)
	if err == nil {
		err = os.WriteFile(f.alone, a.PEM(), 0o600)
	}
	if err == nil {
		err = os.WriteFile(f.bundle, bundle, 0o600)
	}
	if err != nil {
		f.Remove()
		return nil, err
	}
	return f, nil
}

// bundle is what the program is to trust: most runtimes replace the system's authorities
// by the file they are given.
func (a *Authority) bundle(further []string) ([]byte, error) {
	bundle := bytes.NewBuffer(nil)
	for _, file := range systemRoots {
		if text, err := os.ReadFile(file); err == nil {
			bundle.Write(text)
			break
		}
	}
	for _, file := range further {
		if file == "" {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read ca_file: %w", err)
		}
		bundle.WriteByte('\n')
		bundle.Write(text)
	}
	bundle.WriteByte('\n')
	bundle.Write(a.PEM())
	return bundle.Bytes(), nil
}

// Paths are the files.
func (f *Files) Paths() []string { return []string{f.alone, f.bundle} }

// Env returns the variables, as NAME=value, by which runtimes find the certificates.
func (f *Files) Env() []string {
	env := []string{"NODE_EXTRA_CA_CERTS=" + f.alone, "DENO_CERT=" + f.alone} // these two add to their own
	for _, name := range []string{
		"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "AWS_CA_BUNDLE", "NIX_SSL_CERT_FILE",
		"PIP_CERT", "CARGO_HTTP_CAINFO", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
	} {
		env = append(env, name+"="+f.bundle)
	}
	return env
}

// Remove removes the files.
func (f *Files) Remove() { _ = os.RemoveAll(f.folder) }
