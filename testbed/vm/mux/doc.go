// Package mux carries many streams over one connection, each with a window of its own, so that a reader that is slow holds up
// only its own stream. It is what a guest's one serial port is shared by.
package mux
