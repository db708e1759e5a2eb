// Package inside is the first process of a guest: it makes the guest habitable, loads drivers, and then starts programs as the
// host asks over the channel. When the host is gone it switches the guest off.
package inside
