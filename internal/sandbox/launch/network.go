package launch

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/sandbox/confine"
	"github.com/luanette/luanette/internal/sandbox/profile"
)

// gatewayPort is the gateway's port in the network of a program, which has nothing else.
const gatewayPort = 3128

// withGateway gives a program its gateway: at level Strict the only way out, otherwise
// what puts its credentials into requests, and what tells a trace the names of hosts.
func (l *Launcher) withGateway(c *Command, p profile.Profile) (_ *Command, err error) {
	if _, traced := l.traceOf(p.Name); l.Gateway == nil || p.Level != profile.Strict && len(p.Credentials) == 0 && !traced {
		return c, nil
	}
	if c.gateway, err = l.Gateway(p); err != nil {
		return nil, err
	}
	if err := c.addGateway(); err != nil {
		c.gateway.Close()
		return nil, err
	}
	c.launcher = l
	return c, nil
}

// addGateway makes the gateway reachable for the program: at a port of its own network, or
// else at one of the computer.
func (c *Command) addGateway() error {
	port := gatewayPort
	if c.policy == nil || !c.policy.Namespaces || c.policy.Network == confine.HostNetwork {
		listener, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			return fault.Wrap(fault.Unavailable, err, "sandbox: gateway of %s", c.name)
		}
		c.shared, port = listener, listener.Addr().(*net.TCPAddr).Port
	}
	if c.policy != nil {
		c.policy.Read = append(c.policy.Read, c.gateway.Files()...)
		if c.policy.Network != confine.HostNetwork {
			c.policy.Network, c.policy.Port, c.policy.Direct = confine.GatewayNetwork, port, c.directPorts()
		}
	}
	set := map[string]string{}
	for _, entry := range c.gateway.Env(fmt.Sprintf("127.0.0.1:%d", port)) {
		name, value, _ := strings.Cut(entry, "=")
		set[name] = value
	}
	c.Env = withVariables(c.Env, set)
	return nil
}

// directPorts are the ports at which the program reaches the gateway without knowing it,
// in a network of its own.
func (c *Command) directPorts() []int {
	if !c.policy.Namespaces {
		return nil
	}
	return slices.DeleteFunc(c.gateway.Ports(), func(port int) bool { return port == gatewayPort })
}

// serve runs the gateway on a socket that the program's side has made.
func (c *Command) serve(kind string, file *os.File) error {
	defer file.Close()
	if c.gateway == nil {
		return errors.New("a socket was not expected")
	}
	if kind == confine.Names {
		conn, err := net.FilePacketConn(file)
		if err != nil {
			return fmt.Errorf("names: %w", err)
		}
		c.sockets = append(c.sockets, conn)
		c.served.Go(func() { c.gateway.ServeNames(conn) })
		return nil
	}
	listener, err := net.FileListener(file)
	if err != nil {
		return fmt.Errorf("listener: %w", err)
	}
	c.sockets = append(c.sockets, listener)
	if kind == confine.Direct {
		c.served.Go(func() { c.gateway.ServeDirect(listener) })
	} else {
		c.served.Go(func() { c.gateway.Serve(listener, false) })
	}
	return nil
}

func (c *Command) serveShared() {
	if c.shared != nil {
		c.served.Go(func() { c.gateway.Serve(c.shared, true) })
	}
}

// closeGateway ends the gateway and everything else that was served for the program.
func (c *Command) closeGateway() {
	if c.shared != nil {
		_ = c.shared.Close()
	}
	for _, socket := range c.sockets {
		_ = socket.Close()
	}
	if c.gateway != nil {
		c.gateway.Close()
		c.launcher.isRunning(c, false)
	}
	c.served.Wait()
}
