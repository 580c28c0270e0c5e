package oauth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"time"
)

// assert signs a client assertion for the issuer that is valid for a minute (RFC
// 7523).
func assert(key, id, issuer string, now time.Time) (string, error) {
	block, _ := pem.Decode([]byte(key))
	if block == nil {
		return "", errors.New("the client's key is not PEM")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return "", errors.New("the client's key is not a PKCS #8 private key")
	}
	algorithm, err := algorithmOf(parsed)
	if err != nil {
		return "", err
	}
	head, err := json.Marshal(map[string]string{"alg": algorithm, "typ": "JWT"})
	if err != nil {
		return "", err
	}
	body, err := json.Marshal(map[string]any{
		"iss": id, "sub": id, "aud": issuer, "jti": rand.Text(), "iat": now.Unix(), "exp": now.Add(time.Minute).Unix(),
	})
	if err != nil {
		return "", err
	}
	text := base64.RawURLEncoding.EncodeToString(head) + "." + base64.RawURLEncoding.EncodeToString(body)
	signature, err := sign(parsed, []byte(text))
	if err != nil {
		return "", err
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}

func algorithmOf(key any) (string, error) {
	switch k := key.(type) {
	case *rsa.PrivateKey:
		return "RS256", nil
	case ed25519.PrivateKey:
		return "EdDSA", nil
	case *ecdsa.PrivateKey:
		if k.Curve == elliptic.P256() {
			return "ES256", nil
		}
	}
	return "", fmt.Errorf("the client's key is neither RSA, P-256 nor Ed25519")
}

func sign(key any, text []byte) ([]byte, error) {
	digest := sha256.Sum256(text)
	switch k := key.(type) {
	case *rsa.PrivateKey:
		return rsa.SignPKCS1v15(rand.Reader, k, crypto.SHA256, digest[:])
	case *ecdsa.PrivateKey:
		r, s, err := ecdsa.Sign(rand.Reader, k, digest[:])
		if err != nil {
			return nil, err
		}
		signature := make([]byte, 64)
		r.FillBytes(signature[:32])
		s.FillBytes(signature[32:])
		return signature, nil
	case ed25519.PrivateKey:
		return ed25519.Sign(k, text), nil
	}
	return nil, errors.New("no key to sign with")
}
