// Exploring: filters, sorting, searching, hovering, downloads. It stands beside page.js.
