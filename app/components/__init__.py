"""Components of our own: Python faces with the JavaScript beside them."""
