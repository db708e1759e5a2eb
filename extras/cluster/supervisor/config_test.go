package supervisor

import (
	"net"
	"strings"
	"testing"
)

func TestConfig(t *testing.T) {
	for _, c := range []struct {
		config Config
		want   string
	}{
		{Config{CNI: Bridge, Workers: 2}, ""},
		{Config{CNI: FlannelVXLAN, Workers: 9}, ""},
		{Config{CNI: Bridge, Workers: 1, IPv6: true}, ""},
		{Config{CNI: Bridge}, "0 workers"},
		{Config{CNI: FlannelHostGW, Workers: 2, IPv6: true}, "unsupported: flannel-host-gw with IPv6"},
	} {
		err := c.config.check()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v gives %v, want %q", c.config, err, c.want)
		}
	}
}

func TestConflist(t *testing.T) {
	var prefixes []*net.IPNet
	for _, text := range []string{"10.244.1.0/24", "fd77:244:0:1::/64"} {
		_, p, err := net.ParseCIDR(text)
		if err != nil {
			t.Fatal(err)
		}
		prefixes = append(prefixes, p)
	}
	for _, c := range []struct {
		cni      CNI
		prefixes []*net.IPNet
		want     string
	}{
		{Bridge, prefixes, `{
  "cniVersion": "0.3.1",
  "name": "pods",
  "plugins": [
    {
      "bridge": "cni0",
      "hairpinMode": true,
      "ipam": {
        "ranges": [
          [
            {
              "subnet": "10.244.1.0/24"
            }
          ],
          [
            {
              "subnet": "fd77:244:0:1::/64"
            }
          ]
        ],
        "routes": [
          {
            "dst": "0.0.0.0/0"
          },
          {
            "dst": "::/0"
          }
        ],
        "type": "host-local"
      },
      "isGateway": true,
      "type": "bridge"
    },
    {
      "capabilities": {
        "portMappings": true
      },
      "type": "portmap"
    }
  ]
}
`},
		{FlannelVXLAN, prefixes[:1], `{
  "cniVersion": "0.3.1",
  "name": "pods",
  "plugins": [
    {
      "delegate": {
        "hairpinMode": true,
        "isDefaultGateway": true
      },
      "type": "flannel"
    },
    {
      "capabilities": {
        "portMappings": true
      },
      "type": "portmap"
    }
  ]
}
`},
	} {
		got, err := c.cni.conflist(c.prefixes...)
		if err != nil {
			t.Fatal(err)
		}
		if string(got.Content) != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", c.cni, got.Content, c.want)
		}
	}
}
