// Package certificates makes a certificate authority for one sandboxed program, with
// which the egress proxy reads the program's requests to hosts that get a secret.
package certificates

import (
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
