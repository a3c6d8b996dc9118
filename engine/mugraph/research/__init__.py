"""The papers' algorithms as they are written, and what was measured with them. No part of the product."""
