// Package ui is what the program shows to a person: what the terminal can do, colours, text that is safe to print, and the
// progress of a run.
package ui
