package main

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
	"os"
	"path/filepath"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
)

// certCommand is `luanette cert`.
type certCommand struct {
	Hosts  []string      `arg:"" optional:"" help:"Host names and addresses of the server, in addition to localhost, 127.0.0.1 and ::1."`
	Out    string        `short:"o" type:"path" default:"." placeholder:"DIR" help:"Folder to write cert.pem and key.pem to."`
	CACert string        `name:"ca-cert" type:"path" placeholder:"FILE" help:"Certificate of the authority that signs it; self-signed if omitted."`
	CAKey  string        `name:"ca-key" type:"path" placeholder:"FILE" help:"The authority's private key."`
	CA     bool          `name:"ca" help:"Create a certificate authority, which signs the certificates of servers."`
	Valid  time.Duration `default:"8760h" help:"How long it is valid."`
	Owner  string        `placeholder:"USER" help:"User who gets the files, as a service does, or a path whose owner gets them, such as /var/lib/luanette."`
	Force  bool          `help:"Overwrite existing files."`
}

// Help is shown by `luanette cert --help`.
func (certCommand) Help() string {
	return `Creates a certificate for a private server:

  luanette cert hub.internal -o tls
  luanette serve --tls-cert tls/cert.pem --tls-key tls/key.pem

For several servers, create an authority of your own, and have it sign each:

  luanette cert --ca -o authority
  luanette cert hub.internal -o tls --ca-cert authority/cert.pem --ca-key authority/key.pem

For a service that runs as another user, which must be able to read the key:

  sudo luanette cert hub.internal -o /var/lib/luanette/tls --owner /var/lib/luanette

Clients must be configured to trust the certificate or its authority, as with
--ca-file or the setting ca_file; it does not replace a certificate of a public
authority. A running server loads a new certificate without a restart.`
}

// Run creates the certificate.
func (c *certCommand) Run(proc *process) error {
	certFile, keyFile := filepath.Join(c.Out, "cert.pem"), filepath.Join(c.Out, "key.pem")
	for _, path := range []string{certFile, keyFile} {
		if _, err := os.Stat(path); err == nil && !c.Force {
			return fault.New(fault.Conflict, "%s already exists", path).WithHint("choose another folder with --out, or overwrite it with --force")
		}
	}
	switch {
	case c.CA && len(c.Hosts) > 0:
		return fault.New(fault.Config, "an authority has no hosts").WithHint("give the hosts to the certificates that it signs")
	case (c.CACert == "") != (c.CAKey == ""):
		return fault.New(fault.Config, "--ca-cert and --ca-key must be given together")
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	certificate, err := c.sign(key)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.Out, 0o700); err != nil {
		return fault.Wrap(fault.Config, err, "make folder")
	}
	if err := os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600); err != nil {
		return fault.Wrap(fault.Config, err, "write key")
	}
	if err := os.WriteFile(certFile, certificate, 0o644); err != nil { // certificates are public
		return fault.Wrap(fault.Config, err, "write certificate")
	}
	if err := c.giveAway(c.Out, certFile, keyFile); err != nil {
		return err
	}
	_, err = fmt.Fprintf(proc.Stdout, "%s\n%s\n", certFile, keyFile)
	return err
}

// sign creates the certificate. It is self-signed, or signed by the authority, whose
// certificate is then appended.
func (c *certCommand) sign(key *ecdsa.PrivateKey) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	now := time.Now()
	wanted := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "luanette", Organization: []string{"Luanette"}},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(c.Valid),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true,
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	for _, host := range c.Hosts {
		if ip := net.ParseIP(host); ip != nil {
			wanted.IPAddresses = append(wanted.IPAddresses, ip)
		} else {
			wanted.DNSNames = append(wanted.DNSNames, host)
		}
	}
	if c.CA {
		wanted.Subject.CommonName, wanted.IsCA, wanted.KeyUsage = "Luanette authority", true, x509.KeyUsageCertSign
		wanted.DNSNames, wanted.IPAddresses, wanted.ExtKeyUsage = nil, nil, nil
	}
	if c.CACert == "" {
		raw, err := x509.CreateCertificate(rand.Reader, wanted, wanted, key.Public(), key)
		return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), err
	}
	authority, err := tls.LoadX509KeyPair(c.CACert, c.CAKey)
	if err != nil {
		return nil, fault.Wrap(fault.Config, err, "read the authority")
	}
	if !authority.Leaf.IsCA {
		return nil, fault.New(fault.Config, "%s is not the certificate of an authority, which may sign others", c.CACert).
			WithHint("`luanette cert --ca` creates an authority")
	}
	raw, err := x509.CreateCertificate(rand.Reader, wanted, authority.Leaf, key.Public(), authority.PrivateKey)
	if err != nil {
		return nil, fault.Wrap(fault.Config, err, "sign with the authority")
	}
	chain := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
	for _, link := range authority.Certificate {
		chain = append(chain, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: link})...)
	}
	return chain, nil
}
