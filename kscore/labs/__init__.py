"""Code that one page alone needs, or two; each module is named like what it is about, and says for which chapter.

Labs may use all other rooms, and none of those uses a lab.
"""
