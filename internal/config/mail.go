package config

import (
	"net"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/mail"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/govern/approval"
)

// Mail is the server that sends notices to people.
type Mail struct {
	Server   string `toml:"server" trust:"needed" help:"host and port of the mail server that tells people of requests for approval, such as smtp.example:587; docs/approvals.md"`
	From     string `toml:"from" help:"address of the sender"`
	User     string `toml:"user" help:"user at the mail server; empty if it wants none"`
	Password string `toml:"password" secret:"all" help:"password of the user, as a reference such as ${env:NAME}"`
}

// ApprovalMail returns how people are told of requests for approval; nil if no mail server
// is configured.
func (c *Config) ApprovalMail(secrets secret.Finder) (*approval.Mail, error) {
	if c.Mail.Server == "" {
		return nil, nil
	}
	sender := &mail.Sender{Server: c.Mail.Server, From: c.Mail.From, User: c.Mail.User}
	if c.Mail.Password != "" {
		var err error
		if sender.Password, err = secrets.Find(c.Mail.Password); err != nil {
			return nil, fault.Wrap(fault.Config, err, "mail.password")
		}
	}
	if err := sender.Check(); err != nil {
		return nil, fault.Wrap(fault.Config, err, "mail").WithHint("docs/approvals.md")
	}
	return &approval.Mail{Sender: sender, Page: c.PublicURL + "/#/approvals"}, nil
}

func (c *Config) checkMail() error {
	if c.Mail == (Mail{}) {
		return nil
	}
	if host, _, err := net.SplitHostPort(c.Mail.Server); err != nil || host == "" || c.Mail.From == "" || len(c.Identity) == 0 {
		return fault.New(fault.Config, "mail: needs server with a port, from, and people who sign in").WithHint("server = \"smtp.example:587\"; docs/approvals.md, docs/people.md")
	}
	return nil
}
