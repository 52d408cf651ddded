"""Code that one chapter, lab or page alone needs; each module is named like what it is for."""
