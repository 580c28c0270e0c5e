package config

import (
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/mcp/upstream"
)

// UpstreamCurve has the keys for a ZeroMQ backend that uses CURVE.
type UpstreamCurve struct {
	Server string `toml:"server,omitempty" help:"the backend's public key"`
	Secret string `toml:"secret,omitempty" secret:"all" help:"this server's secret key, as a reference such as ${file:PATH}; needed if the backend allows only known clients"`
}

func (u *UpstreamCurve) settings() upstream.Curve {
	if u == nil {
		return upstream.Curve{}
	}
	return upstream.Curve{Server: u.Server, Secret: u.Secret}
}

// hidden returns a copy without secrets.
func (u *UpstreamCurve) hidden() *UpstreamCurve {
	if u == nil {
		return nil
	}
	return &UpstreamCurve{Server: u.Server, Secret: secret.Shown(u.Secret)}
}

// BridgeSecret is the secret key with which tools are served over ZeroMQ; empty means
// without security.
func (l *Loaded) BridgeSecret(secrets secret.Finder) (string, error) {
	if l.Bridge.CurveSecret == "" {
		return "", nil
	}
	found, err := secrets.Find(l.Bridge.CurveSecret)
	if err != nil {
		return "", fault.Wrap(fault.Config, err, "bridge.curve_secret").WithHint("%s", fault.HintOf(err))
	}
	return found.Reveal(), nil
}
