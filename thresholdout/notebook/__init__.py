"""Views of answers, guards, plans and certificates in a notebook: small cards in HTML."""
