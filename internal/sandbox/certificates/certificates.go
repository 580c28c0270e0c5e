// Package certificates makes a certificate authority for one sandboxed program, with
// which the egress proxy reads the program's requests to hosts that get a secret.
package certificates

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"
)

const (
	// authorityLife is longer than programs usually run: they read the certificate once.
	authorityLife = 90 * 24 * time.Hour
	hostLife      = 24 * time.Hour
	clockError    = time.Hour // by which clocks may differ
)

// Authority signs certificates for the hosts it was made for, and no others. Its key is
// in memory only.
type Authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey

	mu    sync.Mutex
	hosts map[string]*tls.Certificate
}

// New makes an authority for hosts, which are names or addresses. Its certificate is
// valid for them only, so that it is of no use elsewhere.
func New(program string, hosts []string, now time.Time) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject:   pkix.Name{CommonName: "Luanette sandbox of " + program},
		NotBefore: now.Add(-clockError), NotAfter: now.Add(authorityLife),
		IsCA: true, MaxPathLenZero: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		PermittedDNSDomainsCritical: true,
	}
	constrain(template, hosts)
	a := &Authority{key: key, hosts: map[string]*tls.Certificate{}}
	raw, err := sign(template, template, key, key)
	if err != nil {
		return nil, err
	}
	a.certificate, err = x509.ParseCertificate(raw)
	return a, err
}

// constrain limits an authority to hosts.
func constrain(template *x509.Certificate, hosts []string) {
	for _, host := range hosts {
		if address, err := netip.ParseAddr(host); err == nil {
			bits := address.BitLen()
			template.PermittedIPRanges = append(template.PermittedIPRanges, &net.IPNet{IP: address.AsSlice(), Mask: net.CIDRMask(bits, bits)})
		} else {
			template.PermittedDNSDomains = append(template.PermittedDNSDomains, host)
		}
	}
	// A kind of name without a permitted one would not be constrained at all.
	if template.PermittedDNSDomains == nil {
		template.PermittedDNSDomains = []string{"invalid"}
	}
	if template.PermittedIPRanges == nil {
		template.ExcludedIPRanges = []*net.IPNet{{IP: net.IPv4zero.To4(), Mask: net.CIDRMask(0, 32)}, {IP: net.IPv6zero, Mask: net.CIDRMask(0, 128)}}
	}
}

// sign signs a certificate with a fresh serial number.
func sign(template, parent *x509.Certificate, key, parentKey *ecdsa.PrivateKey) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial
	return x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, parentKey)
}

// Certificate returns a certificate for one of the hosts, valid now.
func (a *Authority) Certificate(host string, now time.Time) (*tls.Certificate, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if known := a.hosts[host]; known != nil && now.Before(known.Leaf.NotAfter.Add(-clockError)) {
		return known, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject:   pkix.Name{CommonName: host},
		NotBefore: now.Add(-clockError), NotAfter: now.Add(hostLife), BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if len(host) > 64 { // the longest common name
		template.Subject = pkix.Name{CommonName: "host"}
	}
	if address := net.ParseIP(host); address != nil {
		template.IPAddresses = []net.IP{address}
	} else {
		template.DNSNames = []string{host}
	}
	raw, err := sign(template, a.certificate, key, a.key)
	if err != nil {
		return nil, fmt.Errorf("sign certificate of %s: %w", host, err)
	}
	leaf, err := x509.ParseCertificate(raw)
	if err != nil {
		return nil, err
	}
	a.hosts[host] = &tls.Certificate{Certificate: [][]byte{raw, a.certificate.Raw}, PrivateKey: key, Leaf: leaf}
	return a.hosts[host], nil
}

// PEM is the authority's certificate.
func (a *Authority) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw})
}

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
