"""Charts: drawn by Vega-Lite when the report is built, inlined as SVG, coloured by CSS."""
