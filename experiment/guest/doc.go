// Package guest carries runs out inside a virtual machine: the same program runs there, and what it has to say comes out line
// by line. Inside writes those lines, Host reads them; a Message is one of them.
package guest
