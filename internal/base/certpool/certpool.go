// Package certpool reads certificate authorities from files, for servers whose
// certificates the system does not trust.
package certpool

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"os"

	"github.com/luanette/luanette/internal/base/fault"
)

// Load returns the authorities of the system and those in PEM files. Empty names are
// ignored; without a file it returns nil, which means those of the system.
func Load(files ...string) (*x509.CertPool, error) {
	var pool *x509.CertPool
	for _, file := range files {
		if file == "" {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fault.Wrap(fault.Config, err, "read ca_file").WithHint("ca_file names a PEM file with the certificate of an authority")
		}
		if pool == nil {
			pool = system()
		}
		if !pool.AppendCertsFromPEM(text) {
			return nil, fault.New(fault.Config, "ca_file %s contains no certificate", file).
				WithHint("it must be PEM: blocks that begin with -----BEGIN CERTIFICATE-----")
		}
	}
	return pool, nil
}

// system is a copy of the system's authorities, or an empty pool on a machine without.
func system() *x509.CertPool {
	if pool, err := x509.SystemCertPool(); err == nil {
		return pool
	}
	return x509.NewCertPool()
}

// Config returns a TLS configuration with the authorities of Load; nil for the default.
func Config(files ...string) (*tls.Config, error) {
	pool, err := Load(files...)
	if pool == nil || err != nil {
		return nil, err
	}
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, nil
}

// WithPair adds a client certificate to a configuration, which may be nil. Without a file it
// changes nothing.
func WithPair(config *tls.Config, certFile, keyFile string) (*tls.Config, error) {
	if certFile == "" {
		return config, nil
	}
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, fault.Wrap(fault.Config, err, "read client certificate").WithHint("cert_file and key_file must be PEM files that belong together")
	}
	if config == nil {
		config = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	config = config.Clone()
	config.Certificates = []tls.Certificate{pair}
	return config, nil
}

// Client returns an HTTP client with the authorities of Load and connections of its own.
func Client(files ...string) (*http.Client, error) {
	config, err := Config(files...)
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = config
	return &http.Client{Transport: transport}, nil
}

// Hint says what to do about a server whose certificate is not accepted. It is empty for
// other errors.
func Hint(err error) string {
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &authority):
		return "the certificate is signed by an authority that this machine does not know: name the authority's PEM file with ca_file, or --ca-file for a command with --server"
	case errors.As(err, &host):
		return "the certificate is for another name: use one of the names in it, or have one issued for this address"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "the certificate has expired or is not valid yet: renew it, or set this machine's clock"
	}
	return ""
}
