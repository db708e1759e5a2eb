// Package html writes a run as one web page that needs nothing but itself: no network, no other file, and no script to be
// read. Charts are drawn here, as SVG; the script only adds readouts, filters and the choice of a theme. The page reads from the
// verdicts down to what they rest on: for whoever decides the top, for whoever doubts the rest.
//
// Nothing that comes from a study or a record can become markup: text goes through html/template, or through the same
// escaping where it stands in a drawing, and control characters are taken out of the page as a whole.
package html
